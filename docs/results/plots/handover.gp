load "plots/common.gp"
set output "plots/handover.svg"
set xlabel "clients"
set ylabel "us"
set logscale x 2
set xrange [1:128]; set yrange [0:300]
plot "data/handover.dat" using 1:2:3:4 with yerrorbars pt 7 title "last launch to first launch, p5 to p95", 100 lc rgb "#999999" title "goal"
