-- What all scripts begin with: the lock as it is, and the step that grants it.
-- KEYS: lock
-- ARGV: where processes listen and beat, PUBLISH or SPUBLISH, the caller's process, its connection's number, …
--
-- The lock is a list: first its state "owner epoch count block expiry last", then those who
-- wait, "id ticket ttl block". An id begins with its process, 36 characters.
local key, base, publish, process, connection = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local two = redis.call('LRANGE', key, 0, 1)
local owner, epoch, count, block, expiry, last
if two[1] then
  owner, epoch, count, block, expiry, last = string.match(two[1], '^(%S+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
end
if owner then
  expiry = expiry + 0
else
  owner, epoch, count, block, expiry, last = '-', time[1], 0, 0, 0, '-'
end

local function state()
  return owner .. ' ' .. epoch .. ' ' .. count .. ' ' .. block .. ' ' .. expiry .. ' ' .. last
end

-- take makes id the owner of the next block of fences. They are counted on from the last,
-- or from what the clock says in 2^-29 s if that is more: so they also grow when Redis has
-- gone back to an older state.
local function take(id, ttl, size)
  if (time[1] - epoch) * 536870912 + time[2] * 536 > count + 0 then
    epoch, count = time[1], time[2] * 536
  end
  owner, count, block, expiry = id, count + size, size, now + ttl
end

-- late says that this script may come late, from a connection that has broken since: it is
-- not the latest that the process has beaten by.
local function late()
  return redis.call('GET', base .. process .. ':at') ~= connection
end

-- keep says how long Redis keeps the lock: for so many ms after the lease.
local function keep(ms)
  redis.call('PEXPIRE', key, math.max(expiry - now, 0) + ms)
end

-- granted is what the owner is told.
local function granted()
  return owner .. ' ' .. epoch .. ' ' .. (count - block + 1) .. ' ' .. block .. ' ' .. expiry .. ' ' .. now .. ' ' .. key
end

local told, refused, more

-- tell tells a process on the connection that it beats by. The message is not replicated:
-- nobody who listens at a replica may believe it.
local function tell(to, beat)
  redis.set_repl(redis.REPL_NONE)
  local heard = redis.pcall(publish, base .. to, beat .. ' ' .. granted())
  redis.set_repl(redis.REPL_ALL)
  return heard
end

-- grant gives a lock that is free to the first who can be told, beginning with entry, the
-- first in the queue. It drops those who cannot, at most 64; they ask when they are back.
-- It writes before it tells, since a server that refuses writes must tell nobody; and a
-- token that was offered is used up, whether it was heard or not.
local function grant(entry)
  local ended, dropped = expiry, 0
  while entry do
    if dropped == 64 then
      more = true
      break
    end
    local id, ttl, size = string.match(entry, '^(%S+) %d+ (%d+) (%d+)$')
    local to = string.sub(entry, 1, 36)
    local beat = id and redis.call('GET', base .. to)
    if beat then
      take(id, ttl, size)
      redis.call('LSET', key, 0, state())
      local heard = 1
      if to == process and beat == connection then
        told = granted()
      else
        heard = tell(to, beat)
      end
      if type(heard) == 'table' then
        refused = heard.err
        break
      end
      if heard > 0 then
        if dropped == 0 then
          redis.call('LREM', key, 1, entry)
        else
          redis.call('LTRIM', key, dropped + 1, -1)
          redis.call('LSET', key, 0, state())
        end
        return
      end
    end
    dropped = dropped + 1
    entry = redis.call('LINDEX', key, dropped + 1)
  end
  owner, expiry = '-', ended
  if dropped > 0 then
    redis.call('LTRIM', key, dropped, -1)
  end
  redis.call('LSET', key, 0, state())
end

-- reply is status, time, expiry and, if the caller's process is granted the lock, what it is told.
local function reply(status)
  if refused then
    return redis.error_reply('PUBLISH ' .. refused)
  end
  if more then
    status = status .. '+'
  end
  return status .. ' ' .. now .. ' ' .. expiry .. (told and ' ' .. told or '')
end
