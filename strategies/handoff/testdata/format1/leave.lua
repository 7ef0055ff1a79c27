-- Has ids want the lock no longer: releases it if one of them is the owner, and takes them
-- out of the queue.
-- ARGV: …, "id ttl" of each; without the TTL of those who were never queued
-- returns what grant returns; 0 when the lock was not theirs
local owner, told = redis.call('GET', lock), 0
for i = 3, #ARGV do
  local id, ttl = string.match(ARGV[i], '^(%S+)(.*)')
  if owner == id then
    told, owner = redis.call('DEL', lock), false
  elseif owner == id .. '+' then
    told, owner = grant(now()), false
  elseif ttl ~= '' then
    redis.call('LREM', queue, 1, ARGV[i])
  end
end
return told
