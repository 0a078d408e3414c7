load "plots/common.gp"
set output "plots/duty.svg"
set xlabel "duty asked for, %"
set ylabel "GPU busy, %"
set xrange [0:100]; set yrange [0:100]
plot x lc rgb "#999999" title "exact", \
  "data/duty.dat" using ($1-1):2:3:4 with yerrorbars pt 7 title "kernels of 0.2 ms", \
  "" using 1:5:6:7 with yerrorbars pt 5 title "2 ms", \
  "" using ($1+1):8:9:10 with yerrorbars pt 9 title "20 ms"
