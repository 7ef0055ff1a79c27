-- Puts those back into the queue who were dropped from it, or were forgotten: before all
-- who came later.
-- ARGV: …, how long to keep the lock after the lease in ms, entries ordered by ticket, at most 64
-- returns Q
if not two[1] then
  redis.call('RPUSH', key, state())
end
local ahead, place = redis.call('LRANGE', key, 1, 1024), 1
for i = 6, #ARGV do
  local ticket = tonumber(string.match(ARGV[i], ' (%d+) '))
  while ahead[place] and tonumber(string.match(ahead[place], ' (%d+) ') or 0) <= ticket do
    place = place + 1
  end
  if ahead[place] then
    redis.call('LINSERT', key, 'BEFORE', ahead[place], ARGV[i])
  else
    redis.call('RPUSH', key, ARGV[i])
  end
end
keep(ARGV[5])
if owner == '-' or now > expiry then
  grant(redis.call('LINDEX', key, 1))
end
return reply('Q')
