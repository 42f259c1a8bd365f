echo text | "$PX" exec -i -- cat
printf '' | "$PX" exec -i -- wc -c
"$PX" exec -i -- cat <"$PX" | cmp - "$PX" && echo same
