-- purge removes waiters at the head that are past their deadlines, which count as dead, and returns the head.
local function purge(queue, deadlines, now)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    local deadline = head and redis.call('ZSCORE', deadlines, head)
    if not head or deadline and tonumber(deadline) > now then
      return head
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', deadlines, head)
  end
end

