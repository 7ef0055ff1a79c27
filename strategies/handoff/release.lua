-- Releases the lock, and grants it to the next process in the queue if there is one.
-- ARGV: as in grant.lua, then the id, its token (0 if others may have had the lock since it was granted), and an
-- entry to queue before the release ('' for none)
-- returns 0 if the id does not own the lock, otherwise the result of grant
local id, owner = ARGV[3], redis.call('GET', lock)
if owner ~= id and owner ~= id .. '+' then
  return 0
end
if ARGV[5] ~= '' then
  redis.call('RPUSH', queue, ARGV[5])
end
local token = tonumber(ARGV[4])
return grant(token > 0 and token or now())
