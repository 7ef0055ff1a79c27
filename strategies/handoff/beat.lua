-- Says that a process lives, and by which connection it is heard: never by an earlier one
-- than it was, whose commands may come late.
-- KEYS: its heartbeat, its latest connection
-- ARGV: the connection's number, how long the heartbeat lasts and the number is kept in ms
-- returns the time in ms, and - when there was no heartbeat, + when there was, or O for an earlier connection
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = redis.call('GET', KEYS[2])
if latest and latest + 0 > ARGV[1] + 0 then
  return now .. ' O'
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return now .. (redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'GET') and ' +' or ' -')
