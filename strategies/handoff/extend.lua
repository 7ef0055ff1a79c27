-- Renews a lease.
-- ARGV: …, id, TTL in ms, how long to keep an idle lock in ms
-- returns R, or N when it is not the caller's
if owner ~= ARGV[5] or now > expiry then
  return reply('N')
end
expiry = now + ARGV[6]
redis.call('LSET', key, 0, state())
redis.call('PEXPIRE', key, ARGV[7])
return reply('R')
