load "plots/common.gp"
set output "plots/swap.svg"
set xlabel "MiB in so many allocations"
set ylabel "% of a pinned copy's rate"
set yrange [80:105]
set xtics font ",10"
set style data histogram
set style fill solid 0.8
set key top center horizontal
plot "data/swap.dat" using 2:xtic(1) title "out", "" using 3 title "in", "" using 4 title "both", 90 lc rgb "#999999" title "goal"
