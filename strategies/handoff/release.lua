-- Releases the lock, to the next process if one is queued.
-- ARGV: …, id, its token (0 where others may have had the lock since its message), the entry to queue first; '' for none
-- returns 0 if the caller does not have the lock, otherwise the result of grant
local id, owner = ARGV[3], redis.call('GET', lock)
if owner ~= id and owner ~= id .. '+' then
  return 0
end
if ARGV[5] ~= '' then
  redis.call('RPUSH', queue, ARGV[5])
end
local token = tonumber(ARGV[4])
return grant(token > 0 and token or now())
