c     The boundary value from below is asked for before the interior is done.
      program early
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 3000)
      double precision u(0:n+1), v(n), below(n), s
      common /fields/ u, v, below
      integer rank, size, step, i, ierr, status(MPI_STATUS_SIZE)

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      do 10 i = 1, n
         u(i) = dble(mod(i * 7, 31)) + rank
         v(i) = 0.0d0
         below(i) = 1.0d0
   10 continue
      u(0) = 0.0d0
      u(n + 1) = 0.0d0
      do 50 step = 1, 4
         if (rank .lt. size - 1) then
            call MPI_SEND(u(1), n, MPI_DOUBLE_PRECISION, rank + 1, 5,
     >                    MPI_COMM_WORLD, ierr)
         endif
         do 20 i = 1, n
            v(i) = 0.25d0 * (u(i - 1) + 2.0d0 * u(i) + u(i + 1))
   20    continue
         if (rank .gt. 0) then
c           overlap: nonblocking
            call MPI_RECV(below, n, MPI_DOUBLE_PRECISION, rank - 1, 5,
     >                    MPI_COMM_WORLD, status, ierr)
         endif
         do 30 i = 1, n
            u(i) = 0.5d0 * (v(i) + below(i))
   30    continue
   50 continue
      s = 0.0d0
      do 60 i = 1, n
         s = s + u(i)
   60 continue
      write (*, '(i4,z17.16)') rank, s
      call MPI_FINALIZE(ierr)
      end
