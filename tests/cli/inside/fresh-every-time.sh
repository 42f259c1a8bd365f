# Nothing is kept from one box to the next.
"$PX" exec -c 'touch /tmp/kept ~/kept /dev/shm/kept'
"$PX" exec -c 'find /tmp ~ /dev/shm -mindepth 1'
