-- Renews a lease.
-- ARGV: …, id, TTL in ms, how long to keep the lock after the lease in ms
-- returns R, N when it is not the caller's, or O (this connection is not known as the latest)
if connection ~= '0' and late() then
  return reply('O')
end
if owner ~= ARGV[5] or now > expiry then
  return reply('N')
end
expiry = now + ARGV[6]
redis.call('LSET', key, 0, state())
keep(ARGV[7])
return reply('R')
