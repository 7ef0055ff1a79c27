-- Gives up one hold of the lock, or all but so many, and tells the waiters when none is left.
-- KEYS: lock   ARGV: lease in ms, owner, how many holds are to stay or '' for one fewer, and where
-- waiters listen: channel, PUBLISH or SPUBLISH
-- returns nil when it was not the caller's, 0 when still held, 1 when freed
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return nil
end
local stay = tonumber(ARGV[3])
if stay and stay > 0 then
  local more = redis.call('HINCRBY', KEYS[1], ARGV[2], 0) - stay
  if more > 0 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], -more)
  end
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
  end
  return 0
end
if not stay and redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[4] then
  redis.call(ARGV[5], ARGV[4], '0')
end
return 1
