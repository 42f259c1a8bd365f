# A tree of processes works, and its status is the first one's.
try "$PX" exec -c 'sh -c "sh -c \"sh -c \\\"exit 3\\\"; exit 4\"; exit \$((\$? + 10))"'
