# A program that dies of its own mistake: the signal, in words; one that was sent is the sender's affair.
for name in SEGV ABRT FPE TERM; do
    try "$PX" exec -c "kill -$name \$\$" 2>&1
done
try "$PX" -q exec -c 'kill -SEGV $$' 2>&1
