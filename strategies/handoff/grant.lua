-- This part begins every script that may grant the lock to the next process in the queue.
-- KEYS: the lock, its queue
-- ARGV: the beginning of a process's channel name, the caller's process, …
--
-- The lock is a string, the owner's id; a + behind it means that a process may wait. The
-- queue is a list of "id ttl". An id is "process:number:secret"; a process's name has 26
-- characters. The functions use no outer local variables, because each of these would
-- make every script slower.
local lock, queue = KEYS[1], KEYS[2]

-- now is Redis's clock in µs.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- tell returns the grant message for an owner: "process:number token proof lock". The proof is computed
-- from the id's secret and does not reveal it, so a client that can only subscribe and publish can
-- neither make nor change a message.
local function tell(id, token)
  local said = string.format(' %.0f ', token)
  local proof = string.sub(redis.sha1hex(id .. said .. KEYS[1]), 1, 16)
  return string.sub(id, 1, (string.find(id, ':', 28, true) or 0) - 1) .. said .. proof .. ' ' .. KEYS[1]
end

-- mark appends + to the owner's id, because a process may now wait for the lock. It does not change the
-- value of another library's lock, because that library compares the value when it releases.
local function mark(owner)
  if string.find(owner, '^%w+:%w+') and string.sub(owner, 27, 27) == ':' and string.sub(owner, -1) ~= '+' then
    redis.call('APPEND', KEYS[1], '+')
  end
end

-- grant gives the lock, with a token above the given one, to the first id in the queue whose
-- process receives the message. LPOP comes first, because a server that refuses writes then refuses
-- LPOP before any message is sent, and after it Redis refuses no write of this script. The messages are
-- not replicated, because SPUBLISH does not count subscribers on a replica. A token that was offered is
-- not offered again, even if no process received the message.
-- returns the result of tell if the new owner is an id of the caller's process, 1 if the lock is free, 2 if
-- another process has it, 3 if it is free and processes are still queued, whose next check grants it
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
      if type(heard) == 'table' then -- refused: no entry is dropped for it
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
