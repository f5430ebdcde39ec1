C     A branch that has nothing to wait for, and a jump before the end of a loop.
      program else
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 500)
      double precision a(n), b(n), c(n), s
      integer ierr, rank, np, i, step, stat(MPI_STATUS_SIZE)
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, np, ierr)
      do i = 1, n
         a(i) = i + rank
         b(i) = 2*i
         c(i) = 3*i
      end do
      s = 0
      do 5 step = 1, 4
         if (rank .gt. 0) then
            call MPI_RECV(b, n, MPI_DOUBLE_PRECISION, rank - 1, 1,
     &                    MPI_COMM_WORLD, stat, ierr)
         else
            do i = 1, n
               b(i) = step
            end do
         end if
         do i = 1, n
            c(i) = 0.5d0*c(i) + i
         end do
         do i = 1, n
            a(i) = 0.5d0*a(i) + b(i)
         end do
         if (rank .lt. np - 1) call MPI_SEND(a, n,
     &      MPI_DOUBLE_PRECISION, rank + 1, 1, MPI_COMM_WORLD, ierr)
         s = s + a(step)
         if (s .lt. 0) goto 10
    5 continue
   10 continue
      print '(i4,4z17.16)', rank, s, sum(a), sum(b), sum(c)
      call MPI_FINALIZE(ierr)
      end
