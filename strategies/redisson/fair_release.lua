-- Gives up one hold of the lock, or all but so many, and tells the head of the queue when none is left.
-- KEYS: lock, queue, deadlines   ARGV: lease in ms, owner, now in epoch ms, channel,
-- PUBLISH or SPUBLISH, how many holds are to stay or '' for one fewer
-- returns nil when it was another's, -1 when it was nobody's, 0 when still held,
-- 1 when freed
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local me, now = ARGV[2], tonumber(ARGV[3])
local head = purge(queue, deadlines, now)

local code, stay = 1, tonumber(ARGV[6])
if redis.call('EXISTS', lock) == 0 then
  code = -1
elseif redis.call('HEXISTS', lock, me) == 0 then
  return nil
elseif stay and stay > 0 then
  local more = redis.call('HINCRBY', lock, me, 0) - stay
  if more > 0 then
    redis.call('HINCRBY', lock, me, -more)
  end
  if redis.call('PTTL', lock) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', lock, ARGV[1])
  end
  return 0
elseif not stay and redis.call('HINCRBY', lock, me, -1) > 0 then
  return 0
else
  redis.call('DEL', lock)
end
if head then
  redis.call(ARGV[5], ARGV[4] .. ':' .. head, '0')
end
return code
