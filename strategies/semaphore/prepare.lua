-- Sets up the semaphore with all its permits and publishes their number, unless the semaphore exists.
-- KEYS: semaphore   ARGV: permits, channel, PUBLISH or SPUBLISH
-- returns 1
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  redis.call(ARGV[3], ARGV[2], ARGV[1])
end
return 1
