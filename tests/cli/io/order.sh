# Lines of one stream keep their order; what a command wrote before its end is all there.
"$PX" exec -c 'i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i + 1)); done' | sort -cn && echo sorted
for ((i = 0; i < 20; i++)); do "$PX" exec -- head -c 65536 /dev/zero; done | wc -c
