c     Labels and jumps between the exchange and its use.
      program jumps
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1000)
      double precision in(n), u(n), w(n), s
      common /fields/ in, u, w
      integer rank, size, next, prev, step, i, ierr
      integer status(MPI_STATUS_SIZE)

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      next = mod(rank + 1, size)
      prev = mod(rank + size - 1, size)
      do 5 i = 1, n
         in(i) = 0.0d0
         w(i) = 0.0d0
    5    u(i) = mod(i * 3 + rank, 17)
      step = 0
   10 step = step + 1
      call mpi_sendrecv(u, n, MPI_DOUBLE_PRECISION, next, 0, in, n,
     &   MPI_DOUBLE_PRECISION, prev, 0, MPI_COMM_WORLD, status, ierr)
      if (step .gt. 3) goto 90
      do 20 i = 2, n
   20    w(i) = 0.5d0 * w(i-1) + 0.25d0 * u(i)
      if (w(n) .gt. 1.0d30) goto 10
      do 30 i = 1, n
   30    u(i) = 0.5d0 * in(i) + w(i)
      goto 10
   90 s = 0.0d0
      do 95 i = 1, n
   95    s = s + u(i) + in(i)
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end
