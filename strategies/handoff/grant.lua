-- What every script begins with that may give the lock to the next.
-- KEYS: the lock, its queue
-- ARGV: what the channel of a process begins with, the caller's process, …
--
-- The lock is a string, the owner's id; a + behind it says that somebody may wait. The
-- queue is a list of "id ttl". An id is "process:number:secret"; a process's name has 26
-- characters. The functions take no locals from around them: that would cost each
-- script more.
local lock, queue = KEYS[1], KEYS[2]

-- now is Redis's clock in µs.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- tell returns what an owner is told: "process:number token proof lock". Only who knows the
-- id's secret can make the proof, and the proof does not show it: whoever listens, or only
-- publishes, can neither make nor change a message.
local function tell(id, token)
  local said = string.format(' %.0f ', token)
  local proof = string.sub(redis.sha1hex(id .. said .. KEYS[1]), 1, 16)
  return string.sub(id, 1, (string.find(id, ':', 28, true) or 0) - 1) .. said .. proof .. ' ' .. KEYS[1]
end

-- mark says on the lock that somebody may wait. The value of another library is not changed, which
-- compares it when it releases.
local function mark(owner)
  if string.find(owner, '^%w+:%w+') and string.sub(owner, 27, 27) == ':' and string.sub(owner, -1) ~= '+' then
    redis.call('APPEND', KEYS[1], '+')
  end
end

-- grant gives the lock, with a token above the one given, to the first in the queue who
-- can be told. LPOP comes first: a server that refuses writes refuses it, and nobody has
-- been told; after it Redis refuses this script no write. A message is not replicated, else
-- it would be heard at a replica by those whom nobody counts here. A token that was
-- offered is not offered again.
-- returns what tell returns if the next is of the caller's process, 1 when the lock is free, 2 when
-- another process has it, 3 when it is free and some wait still, who look for themselves
local function grant(token)
  local lock, queue = KEYS[1], KEYS[2]
  for _ = 1, 64 do
    local entry = redis.call('LPOP', queue)
    if not entry then
      redis.call('DEL', lock)
      return 1
    end
    local space = string.find(entry, ' [1-9]%d*$', 28)
    if space and #entry - space < 14 and string.sub(entry, 27, 27) == ':' then -- a TTL that SET takes
      token = token + 1
      local id = string.sub(entry, 1, space - 1)
      redis.call('SET', lock, id .. '+', 'PX', string.sub(entry, space + 1))
      local process = string.sub(id, 1, 26)
      local told = tell(id, token)
      if process == ARGV[2] then
        return told
      end
      redis.set_repl(redis.REPL_NONE)
      local heard = redis.pcall('SPUBLISH', ARGV[1] .. process, told)
      redis.set_repl(redis.REPL_ALL)
      if type(heard) == 'table' then -- refused: nobody is dropped for it
        redis.call('LPUSH', queue, entry)
        redis.call('PEXPIRE', queue, 600000)
        break
      end
      if heard > 0 then
        return 2
      end
    end
  end
  redis.call('DEL', lock)
  return 3
end
