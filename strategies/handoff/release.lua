-- Gives the lock up, to the next if somebody waits.
-- ARGV: …, id, its token, the entry to queue first; '' for none
-- returns 0 when the lock is not the caller's, else what grant returns
local owner, id = redis.call('GET', lock), ARGV[3]
if owner ~= id and owner ~= id .. '+' then
  return 0
end
if ARGV[5] ~= '' then
  redis.call('RPUSH', queue, ARGV[5])
elseif owner == id then
  redis.call('DEL', lock)
  return 1
end
return grant(tonumber(ARGV[4]))
