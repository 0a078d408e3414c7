load "plots/common.gp"
set output "plots/cluster.svg"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set ylabel "seconds"
set yrange [0:*]
set bmargin 4
set key reverse Left
# wait_p50_s becomes "wait" above "P50".
label(name) = name[1:4] eq "make" ? "makespan" : name[1:4] eq "wait" \
  ? "wait\n" . which(name[6:strlen(name) - 2]) : "JCT\n" . which(name[5:strlen(name) - 2])
which(word) = word[1:1] eq "p" ? "P" . word[2:*] : word
plot "data/cluster.dat" every ::0::6 using 2:xtic(label(strcol(1))) title "whole GPUs", \
  "" every ::0::6 using 3 title "whole GPUs, simulated", \
  "" every ::0::6 using 4 title "shares", \
  "" every ::0::6 using 5 title "shares, simulated"
