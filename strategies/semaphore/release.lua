-- Releases a permit and publishes the number of free permits.
-- KEYS: semaphore, and deadlines if permits have one
-- ARGV: channel, PUBLISH or SPUBLISH; with deadlines also id, now in epoch ms
-- returns 1, or 0 if the permit had expired or the semaphore no longer exists
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
