      program main
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1200)
      double precision a(n), b(n), c(n), d(n)
      common /all/ a, b, c, d
      integer ierr, me, np, next, prev, i, step, got
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
      next = mod(me + 1, np)
      prev = mod(me + np - 1, np)
      do 10 i = 1, n
        a(i) = i + me
        b(i) = 2 * i
        c(i) = 3 * i
   10   d(i) = 4 * i
      do 40 step = 1, 3
        call exchange_of_the_neighbours_values(next, prev, me, got)
        do 20 i = 2, n - 1
          c(i) = 0.5d0 * c(i) + a(i)
   20   continue
        do 30 i = 2, n - 1
          d(i) = 0.25d0 * (c(i - 1) + c(i + 1)) + 0.5d0 * b(i) + got
   30   continue
   40 continue
      write(*, '(Z16.16)') (transfer(d(i), 0_8), i = 1, n, 7)
      call mpi_finalize(ierr)
      end

      subroutine exchange_of_the_neighbours_values(next, prev, me, g)
      implicit none
      include 'mpif.h'
      integer n, next, prev, me, g, ierr, status(MPI_STATUS_SIZE)
      parameter (n = 1200)
      double precision a(n), b(n), c(n), d(n)
      common /all/ a, b, c, d
      if (mod(me, 2) .eq. 0) then
        call mpi_send(a, n, MPI_DOUBLE_PRECISION, next, 1,
     &                MPI_COMM_WORLD, ierr)
        call mpi_recv(b, n, MPI_DOUBLE_PRECISION, prev, 1,
     &                MPI_COMM_WORLD, status, ierr)
        call mpi_get_count(status, MPI_DOUBLE_PRECISION, g, ierr)
      else
        call mpi_recv(b, n, MPI_DOUBLE_PRECISION, prev, 1,
     &                MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        call mpi_send(a, n, MPI_DOUBLE_PRECISION, next, 1,
     &                MPI_COMM_WORLD, ierr)
        g = n
      end if
      end
