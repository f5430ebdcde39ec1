c     Residual norms of two fields, one after the other.
      program norms
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 2500)
      double precision u(n), v(n)
      common /fields/ u, v
      integer one, two, all1, all2
      integer rank, step, i, ierr

      call mpi_init(ierr)
      call mpi_comm_rank(mpi_comm_world, rank, ierr)
      do i = 1, n
         u(i) = mod(i * 13 + rank, 53)
         v(i) = mod(i * 5, 37)
      end do
      do step = 1, 3
         call norm(u, n, one)
c        overlap: nonblocking
         call mpi_allreduce(one, all1, 1, mpi_integer, mpi_max,
     &                      mpi_comm_world, ierr)
         call norm(v, n, two)
         call mpi_allreduce(two, all2, 1, mpi_integer, mpi_max,
     &                      mpi_comm_world, ierr)
         do i = 1, n
            u(i) = 0.5d0 * u(i) + v(i) / (1.0d0 + all2)
         end do
         do i = 1, n
            v(i) = 0.5d0 * v(i) + u(i) / (1.0d0 + all1)
         end do
      end do
      write (*, '(3i8)') rank, all1, all2
      call mpi_finalize(ierr)
      end

      subroutine norm(x, n, largest)
      implicit none
      integer n, i
      integer largest
      double precision x(n)
      largest = 0
      do i = 1, n
         largest = max(largest, int(abs(x(i))))
      end do
      end
