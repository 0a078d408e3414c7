load "plots/common.gp"
set xtics noenhanced
set output "plots/cluster.svg"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set ylabel "seconds"
set yrange [0:*]
plot "data/cluster.dat" every ::0::6 using 2:xtic(1) title "whole GPUs", \
  "" every ::0::6 using 3 title "whole GPUs, simulated", \
  "" every ::0::6 using 4 title "shares", \
  "" every ::0::6 using 5 title "shares, simulated"
