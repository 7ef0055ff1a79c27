-- Takes the lock if it is free and the caller is next, or adds a hold if the caller has it already;
-- otherwise queues the caller, unless it does not wait.
-- KEYS: lock, queue, deadlines
-- ARGV: lease in ms, owner, now in epoch ms, wait in ms (0: do not queue), channel and PUBLISH or SPUBLISH
-- to notify the next waiter that the lease is short (channel '': do not notify)
-- returns nil if taken; otherwise the lock's PTTL, at least 0, if the caller was queued before,
-- or the remaining time of the entry before it if it has just been queued
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local me, now, wait = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local head = purge(queue, deadlines, now)

local held = redis.call('EXISTS', lock) == 1
if not held and (not head or head == me) then
  redis.call('LPOP', queue)
  redis.call('ZREM', deadlines, me)
  for _, waiter in ipairs(redis.call('ZRANGE', deadlines, 0, -1)) do
    redis.call('ZINCRBY', deadlines, -wait, waiter)
  end
  redis.call('HINCRBY', lock, me, 1)
  redis.call('PEXPIRE', lock, ARGV[1])
  local next = ARGV[5] ~= '' and redis.call('LINDEX', queue, 0)
  if next then
    redis.call(ARGV[6], ARGV[5] .. ':' .. next, '0')
  end
  return nil
end
if held and redis.call('HEXISTS', lock, me) == 1 then
  redis.call('HINCRBY', lock, me, 1)
  if redis.call('PTTL', lock) < tonumber(ARGV[1]) then -- it never shortens a lease
    redis.call('PEXPIRE', lock, ARGV[1])
  end
  return nil
end

local left = redis.call('PTTL', lock)
if wait == 0 then
  return left
end
if redis.call('ZSCORE', deadlines, me) then
  return math.max(left, 0)
end
local tail = redis.call('LINDEX', queue, -1)
local last = tail and redis.call('ZSCORE', deadlines, tail)
if last then
  left = tonumber(last) - now
end
redis.call('ZADD', deadlines, left + wait + now, me)
redis.call('RPUSH', queue, me)
return left
