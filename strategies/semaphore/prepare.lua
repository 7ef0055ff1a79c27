-- Sets the semaphore up if nobody has yet.
-- KEYS: semaphore   ARGV: permits, channel
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  redis.call('PUBLISH', ARGV[2], ARGV[1])
end
return 1
