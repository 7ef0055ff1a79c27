-- Gives a permit back and tells how many are free then.
-- KEYS: semaphore   ARGV: channel, PUBLISH or SPUBLISH
-- returns 1, or 0 when there is no semaphore any more
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call(ARGV[2], ARGV[1], redis.call('INCRBY', KEYS[1], 1))
return 1
