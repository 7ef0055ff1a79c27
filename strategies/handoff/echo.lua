-- Publishes to the process itself, which so learns whether it hears what is published where its commands go.
-- ARGV: …, what to publish
-- returns how many connections have received it
--
-- The message is not replicated, as those of a grant are not: it must not be heard at a replica.
redis.set_repl(redis.REPL_NONE)
return redis.call('SPUBLISH', ARGV[1] .. ARGV[2], ARGV[3])
