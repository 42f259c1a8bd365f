# Two boxes do not count each other's processes.
for i in 1 2 3; do
    "$PX" exec --pids 20 -- dash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait; echo ok' &
done
wait
