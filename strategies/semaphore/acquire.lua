-- Takes a permit if there is one. A semaphore that nobody has set up is set up.
-- KEYS: semaphore   ARGV: permits, channel, PUBLISH or SPUBLISH
-- returns 1, or 0 when there is none
local free = redis.call('GET', KEYS[1])
local new = not free
if new then
  free = ARGV[1]
  redis.call('SET', KEYS[1], free)
end
if tonumber(free) < 1 then
  return 0
end
free = redis.call('DECR', KEYS[1])
if new and free > 0 then
  redis.call(ARGV[3], ARGV[2], free)
end
return 1
