-- Gives a permit back and tells how many are free then.
-- KEYS: semaphore, and deadlines if permits have one
-- ARGV: channel, PUBLISH or SPUBLISH; with deadlines also id, now in epoch ms
-- returns 1, or 0 when it had run out or there is no semaphore any more
local lasts = true
if KEYS[2] then
  local deadline = redis.call('ZSCORE', KEYS[2], ARGV[3])
  if not deadline then
    return 0
  end
  redis.call('ZREM', KEYS[2], ARGV[3])
  lasts = tonumber(deadline) > tonumber(ARGV[4])
elseif redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call(ARGV[2], ARGV[1], redis.call('INCRBY', KEYS[1], 1))
return lasts and 1 or 0
