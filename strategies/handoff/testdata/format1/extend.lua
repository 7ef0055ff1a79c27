-- Renews a lease. A late command does not shorten what a later one has made longer.
-- KEYS and ARGV: as in grant.lua, id, TTL in ms
-- returns Redis's time in µs, or 0 when the lock is not the caller's
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[3] and owner ~= ARGV[3] .. '+' then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[4], 'GT')
local time = redis.call('TIME')
return time[1] * 1000000 + time[2]
