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
  owner, epoch, count, block, expiry, last = '-', time[1], math.floor(time[2] * 4294), 0, 0, '-'
end

local function state()
  return owner .. ' ' .. epoch .. ' ' .. count .. ' ' .. block .. ' ' .. expiry .. ' ' .. last
end

-- take makes id the owner of the next block of fences. What Lua writes as 1e+14 it could
-- not read again, so a large count is carried into the epoch: the tokens stay the same.
local function take(id, ttl, size)
  owner, count, block, expiry = id, count + size, size, now + ttl
  if count >= 8589934592 then
    epoch, count = epoch + 1, count - 4294967296
  end
end

-- granted is what the owner is told.
local function granted()
  return owner .. ' ' .. epoch .. ' ' .. (count - block + 1) .. ' ' .. block .. ' ' .. expiry .. ' ' .. now .. ' ' .. key
end

local told, refused, more

-- grant gives a lock that is free to the first who can be told, beginning with entry, the
-- first in the queue. It drops those who cannot, at most 64; they ask when they are back.
local function grant(entry)
  local released, dropped = {owner, epoch, count, block, expiry}, 0
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
      local heard = 1
      if to == process and beat == connection then
        told = granted()
      else
        heard = redis.pcall(publish, base .. to, granted())
      end
      if heard == 0 or type(heard) == 'table' then
        owner, epoch, count, block, expiry = unpack(released)
        if heard ~= 0 then
          refused = heard.err
          break
        end
      else
        if dropped == 0 then
          redis.call('LPOP', key)
        else
          redis.call('LTRIM', key, dropped + 1, -1)
        end
        redis.call('LSET', key, 0, state())
        return
      end
    end
    dropped = dropped + 1
    entry = redis.call('LINDEX', key, dropped + 1)
  end
  owner = '-'
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
