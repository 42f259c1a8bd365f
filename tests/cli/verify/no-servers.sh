# Where a program of px is missing, the checks that need it say so and what to do.
mkdir bare
for program in px px-main px-attack px-net; do
    cp "$(dirname "$PX")/$program" bare/
done
bare/px sandbox verify --only G5_names,G1_twin
