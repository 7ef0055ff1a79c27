-- Has ids want the lock no longer: releases it if one of them is the owner, and takes them
-- out of the queue.
-- ARGV: …, "id ttl" of each
-- returns what grant returns; 0 when the lock was not theirs
local owner, told = redis.call('GET', lock), 0
for i = 3, #ARGV do
  local id = string.match(ARGV[i], '^%S+')
  if owner == id or owner == id .. '+' then
    told = grant(now())
  else
    redis.call('LREM', queue, 1, ARGV[i])
  end
end
return told
