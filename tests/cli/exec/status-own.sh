for status in 0 1 2 42 124 125 126 127 128 255; do
    try "$PX" exec -c "exit $status"
done
