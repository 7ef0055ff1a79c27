-- The counter behind the lock, as a resource that refuses whoever comes with a
-- token older than one it has seen.
-- KEYS: counter, floor. ARGV: token in 20 digits, so that text compares as numbers
-- do; the new value, or nothing to read.
-- Returns the value, or false to a stale token.
local floor = redis.call('GET', KEYS[2])
if floor and floor > ARGV[1] then
  return false
end
redis.call('SET', KEYS[2], ARGV[1])
if ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[2])
  return ARGV[2]
end
return redis.call('GET', KEYS[1]) or '0'
