	program tabs
c tabs, CRLF, cpp lines, continuation with tab-digit
	include 'mpif.h'
	integer n, i, it, me, np, ie, nx, pv
	parameter (n=120)
	double precision a(n), b(n), c(n)
	integer st(MPI_STATUS_SIZE)
	call mpi_init(ie)
	call mpi_comm_rank(mpi_comm_world, me, ie)
	call mpi_comm_size(mpi_comm_world, np, ie)
	nx = mod(me+1, np)
	pv = mod(me+np-1, np)
	do 10 i = 1, n
	  a(i) = i + me
	  b(i) = 0
10	  c(i) = i
	do 50 it = 1, 4
	  call mpi_sendrecv(a, n, mpi_double_precision, nx, 1,
	1    b, n, mpi_double_precision, pv, 1, mpi_comm_world,
	2    st, ie)
* in between a comment
	  do 20, i = 1, n
20	  c(i) = 0.5d0*c(i) + i
	  do 30 i = 1, n
	    if (b(i) .lt. 0d0) goto 30
	    a(i) = 0.5d0*b(i) + c(i)
30	  continue
	  if (it .eq. 3) goto 50
	  call mpi_bcast(a, n, mpi_double_precision, 0,
	1   mpi_comm_world, ie)
	  do 40 i = 1, n
40	  c(i) = 0.5d0*c(i) - i
50	continue
	write(*,'(3(z16.16,1x))') a(3), b(5), c(7)
	call mpi_finalize(ie)
	end
