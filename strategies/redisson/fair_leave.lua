-- Removes waiters that give up from the queue, and subtracts the waits of those before it from the deadline of each
-- remaining waiter. If the lock is free it notifies the head, because an earlier notification may have gone to a
-- waiter that left.
-- KEYS: lock, queue, deadlines
-- ARGV: channel, PUBLISH or SPUBLISH, then the owner and the wait in ms of each waiter that gives up
-- returns 1
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local leaving = {}
for i = 3, #ARGV, 2 do
  leaving[ARGV[i]] = tonumber(ARGV[i + 1])
  redis.call('ZREM', deadlines, ARGV[i])
end
local shift = 0
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  if leaving[waiter] then
    shift = shift + leaving[waiter]
    redis.call('LREM', queue, 1, waiter)
  elseif shift > 0 then
    redis.call('ZINCRBY', deadlines, -shift, waiter)
  end
end
local head = redis.call('LINDEX', queue, 0)
if head and redis.call('EXISTS', lock) == 0 then
  redis.call(ARGV[2], ARGV[1] .. ':' .. head, '0')
end
return 1
