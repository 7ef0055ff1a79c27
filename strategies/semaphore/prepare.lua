-- Sets up the semaphore if it does not exist.
-- KEYS: semaphore   ARGV: permits, channel, PUBLISH or SPUBLISH
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  redis.call(ARGV[3], ARGV[2], ARGV[1])
end
return 1
