-- Releases all holds of the lock, or one of several, and notifies the head of the queue if none is left.
-- KEYS: lock, queue, deadlines   ARGV: lease in ms, owner, now in epoch ms, channel,
-- PUBLISH or SPUBLISH, 1 to release only one hold
-- returns nil if the caller did not have the lock, 0 if it is still held, 1 if it is free
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local me, now = ARGV[2], tonumber(ARGV[3])
local head = purge(queue, deadlines, now)

local free = redis.call('EXISTS', lock) == 0
if not free then
  if redis.call('HEXISTS', lock, me) == 0 then
    return nil
  elseif redis.call('HINCRBY', lock, me, -1) > 0 and ARGV[6] == '1' then
    if redis.call('PTTL', lock) < tonumber(ARGV[1]) then
      redis.call('PEXPIRE', lock, ARGV[1])
    end
    return 0
  end
  redis.call('DEL', lock)
end
if head then
  redis.call(ARGV[5], ARGV[4] .. ':' .. head, '0')
end
return not free and 1 or nil
