-- Renews a lease. A command that arrives late does not shorten a lease that a later command has extended.
-- KEYS and ARGV: as in grant.lua, then the id and the TTL in ms
-- returns Redis's time in µs, or 0 if the id does not own the lock
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[3] and owner ~= ARGV[3] .. '+' then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[4], 'GT')
local time = redis.call('TIME')
return time[1] * 1000000 + time[2]
