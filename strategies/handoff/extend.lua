-- Renews a lease. A late command does not shorten what a later one has made longer.
-- KEYS and ARGV: as in grant.lua, id, TTL in ms
-- returns 1, or 0 when the lock is not the caller's
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[3] and owner ~= ARGV[3] .. '+' then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[4], 'GT')
return 1
