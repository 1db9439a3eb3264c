/* y[n][o][c] = the sum of the x[n][i][c] that window o sees, from 0 on in the order of i. Integers wrap. */
WINDOW_FOLD(window_sum, SUM, 0, all += (SUM)v)
