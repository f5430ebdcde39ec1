c     A COMMON block that is sent as its first variable.
      program commn1
      include 'mpif.h'
      integer rank, size, i, step, ierr
      double precision u(40), w(40)
      double precision p1, p2, p3
      common /pars/ p1, p2, p3
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
      do i = 1, 40
         u(i) = 1
         w(i) = 0
      end do
      p2 = 0
      do step = 1, 3
         p1 = step
         if (rank .eq. 0) call set(step)
         call MPI_Bcast(p1, 3, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD,
     &                  ierr)
         do i = 1, 40
            w(i) = w(i) + p2*i
         end do
         do i = 1, 40
            u(i) = 0.5d0*u(i) + p1
         end do
      end do
      print '(i4,(6z17.16))', rank, u, w
      call MPI_Finalize(ierr)
      end

      subroutine set(step)
      integer step
      double precision p1, p2, p3
      common /pars/ p1, p2, p3
      p2 = step*3
      p3 = step*4
      end
