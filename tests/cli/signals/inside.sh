# kill -9 in the box: of itself, and of everything it can reach. That leaves out the killer and pid 1.
try "$PX" exec -c 'kill -9 $$'
try "$PX" exec -c 'sleep 100 & kill -9 -1; wait $!; echo "sleep ended with $?"'
