-- Takes a permit if there is one, after those that have run out have been given
-- back. A semaphore that nobody has set up is set up.
-- KEYS: semaphore, deadlines   ARGV: permits, channel, id, now, deadline, both in epoch ms,
-- PUBLISH or SPUBLISH
-- returns nil when taken, else the next deadline, or -1 where permits have none
local free = redis.call('GET', KEYS[1])
local more = not free
if more then
  free = ARGV[1]
  redis.call('SET', KEYS[1], free)
end
local expired = redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
if expired > 0 then
  more = true
  free = redis.call('INCRBY', KEYS[1], expired)
end
if tonumber(free) < 1 then
  local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  return tonumber(next[2] or -1)
end
free = redis.call('DECR', KEYS[1])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[3])
if more and free > 0 then
  redis.call(ARGV[6], ARGV[2], free)
end
return nil
