-- Has ids want the lock no longer: releases it if one of them is the owner, and takes them
-- out of the queue.
-- ARGV: …, "id ttl" of each; without the TTL of those who were never queued
-- returns what grant returns; 0 when the lock was not theirs
--
-- It looks at the two ends of the queue only, so that a long one costs no more: an entry in
-- the middle stays, and its process gives the lock up at its turn.
local near = 64

local function remove(entry)
  if redis.call('LPOS', queue, entry, 'MAXLEN', near) then
    redis.call('LREM', queue, 1, entry)
  elseif redis.call('LPOS', queue, entry, 'RANK', -1, 'MAXLEN', near) then
    redis.call('LREM', queue, -1, entry)
  end
end

local owner, told = redis.call('GET', lock), 0
for i = 3, #ARGV do
  local id, ttl = string.match(ARGV[i], '^(%S+)(.*)')
  if owner == id then
    told, owner = redis.call('DEL', lock), false
  elseif owner == id .. '+' then
    told, owner = grant(now()), false
  elseif ttl ~= '' then
    remove(ARGV[i])
  end
end
return told
