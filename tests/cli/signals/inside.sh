# kill -9 in the box, of itself and of all that can be reached.
try "$PX" exec -c 'kill -9 $$'
try "$PX" exec -c 'kill -9 -1'
try "$PX" exec -c 'sleep 100 & kill -9 -1; echo not reached'
